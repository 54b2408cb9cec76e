/* SPDX-License-Identifier: MIT
 *
 * The one place that asks which operating system this is (docs/hacking.md).
 * Everything else is chosen by the Makefile: thing_linux.c, thing_win.c, thing_macos.c.
 */
#ifndef PP_CORE_OS_H
#define PP_CORE_OS_H

#if defined(__linux__)
#define PP_OS_NAME "linux"
#elif defined(_WIN32)
#define PP_OS_NAME "windows"
#elif defined(__APPLE__)
#define PP_OS_NAME "macos"
#else
#define PP_OS_NAME "unknown"
#endif

/* Whose formats a printf-like function of ours takes, for __attribute__((format(PP_FORMAT, ...))): on
 * Windows mingw's own, where the plain word would mean msvcrt's; clang knows no other word. */
#if defined(_WIN32) && !defined(__clang__)
#define PP_FORMAT gnu_printf
#else
#define PP_FORMAT printf
#endif

#endif
