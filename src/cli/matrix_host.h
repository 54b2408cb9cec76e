/* SPDX-License-Identifier: MIT
 *
 * What cmd_matrix asks of a system: matrix_host_linux.c, matrix_host_win.c.
 */
#ifndef PP_CLI_MATRIX_HOST_H
#define PP_CLI_MATRIX_HOST_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/core/error.h"
#include "src/core/target.h"

enum pp_matrix_place { PP_MATRIX_PLACE_FILE, PP_MATRIX_PLACE_FOLDER, PP_MATRIX_PLACE_DEVICE };

/* What stands there; what does not exist is a file to be made. */
enum pp_matrix_place pp_matrix_host_place(const char *path);
/* The name that the system has for this device: "sda", "PhysicalDrive1". */
int pp_matrix_host_disk(const char *path, char *name, size_t bytes, struct pp_error *err);
/*
 * Holds a device that nothing else of this system uses; NULL where opening it does that already, or,
 * with -1 in *rc, on failure.
 */
const struct pp_target *pp_matrix_host_claim(const char *serial, int *rc, struct pp_error *err);
/* A request to end (Ctrl-C, a signal, a window that is closed) sets *stop: the test file is removed
 * whatever ends us. */
void pp_matrix_host_catch(volatile sig_atomic_t *stop);
/* Version of the system beneath. */
void pp_matrix_host_kernel(char *out, size_t bytes);
/* File system and mount options of a folder; false where they are not known. */
bool pp_matrix_host_fs(const char *folder, struct pp_stack *stack);

#endif
