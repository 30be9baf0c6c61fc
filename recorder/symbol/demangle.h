/*
 * Linker names made readable: Itanium C++, Rust v0 and Rust legacy, by libiberty's demanglers.
 *
 * Function names without parameters and return types, as `perf script` and `perf report` print
 * them and as flame graphs show them: foo::bar<3>, not void foo::bar<3>(int). Rust names come
 * without their hash. raw_name in struct function keeps the linker's name.
 *
 * Names come from files that anybody may have written: input and output have ceilings, libiberty's
 * recursion limit stays on (it leaves C++ names over 1,023 bytes as they are), and an output that
 * would grow without end is cut. No host code; any thread.
 */
#ifndef SYMBOL_DEMANGLE_H
#define SYMBOL_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_MAX_BYTES 4000         /* longer linker names are not looked at */

/*
 * The readable form of raw in out (n bytes, NUL-terminated, cut when longer): demangled, a symbol
 * version (@@GLIBC_2.14) removed.
 *
 * returns  false when raw is readable as it is; out then holds nothing
 */
bool demangle(const char *raw, char *out, size_t n);

#endif
