/* SPDX-License-Identifier: MIT
 *
 * How a program of ours begins: its arguments in UTF-8, its output as it is written.
 */
#ifndef PP_CORE_CONSOLE_H
#define PP_CORE_CONSOLE_H

/* First thing in main. On Windows *argv becomes the command line in UTF-8, consoles show UTF-8 and
 * output keeps its line ends; elsewhere all that is so. Replaces nothing where it cannot. */
void pp_console_begin(int *argc, char ***argv);

#endif
