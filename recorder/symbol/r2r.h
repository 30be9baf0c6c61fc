/*
 * Names of precompiled .NET code: methods of the ReadyToRun images in a .dll, or of all of them in
 * a single-file program. They need nothing of the process that runs it, and no diagnostics port.
 *
 * An image is PE. Its CLR header points to metadata (tables of types and methods) and to a
 * READYTORUN_HEADER, whose sections say which runtime functions belong to which method:
 *
 *	102 RuntimeFunctions	{u32 begin, u32 end, u32 unwind} of x64, ascending
 *	103 MethodDefEntryPoints	an array by method: its first runtime function
 *	109 InstanceMethodEntryPoints	a hash table: signature, the first runtime function
 *	120 HotColdMap	functions from its first number on are parts of others
 *
 * A function belongs to the method with the nearest first one at or before it. Instances of
 * another image's generic methods end those before them and have no name. Composite images have
 * none at all.
 *
 * Every byte is hostile. Portable, pure but for reading `in`; any thread.
 * Source: dotnet/runtime docs/design/coreclr/botr/readytorun-format.md, src/coreclr/vm/
 * nativeformatreader.h; ECMA-335 II.22 to II.24 (metadata); docs/design of bundles: dotnet/designs
 * accepted/2020/single-file. Checked beside the runtime's own rundown, .NET 8 and Core 3.1.
 */
#pragma once

#include "symbol/elf.h"

#define R2R_FILE_MAX_BYTES ((uint64_t)1 << 30)
#define R2R_IMAGE_MAX_BYTES ((uint64_t)128 << 20)
#define R2R_NAMES_MAX_BYTES ((size_t)48 << 20)
#define R2R_IMAGES_MAX 4096u

/*
 * Index the methods by offset in the file (base 0); names are "Module!Namespace.Class.Method".
 *
 * returns  0; ERR_NOT_FOUND = there is no precompiled code; ERR_FORMAT, ERR_LIMIT, ERR_MEMORY,
 *          ERR_IO
 */
int r2r_index_new(const struct bytes *in, struct elf_index **out, struct err *err);
