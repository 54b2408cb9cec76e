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

#endif
