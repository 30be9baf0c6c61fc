/*
 * Linker names made readable: Itanium C++, Rust v0 and Rust legacy, by libiberty's demanglers.
 *
 * Function names come without parameters and return types, as `perf script` and `perf report` print
 * them and flame graphs show them: foo::bar<3>, not void foo::bar<3>(int). Rust names come without
 * their hash. raw_name in struct function keeps the linker's name.
 *
 * Names come from files that anybody may have written: input and output have ceilings, libiberty's
 * recursion limit stays on (it leaves C++ names over 1,023 bytes unchanged), and endless output is
 * cut. No host code; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_MAX_BYTES 4000         /* longer linker names are not demangled */

/*
 * Write the readable form of raw to out (n bytes, NUL-terminated, cut when longer): demangled,
 * without a symbol version (@@GLIBC_2.14); "@plt" stays.
 *
 * returns  false when raw is readable already; out is then undefined
 */
bool demangle(const char *raw, char *out, size_t n);
