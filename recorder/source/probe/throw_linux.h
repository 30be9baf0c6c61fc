/*
 * Where C++ programs throw: __cxa_throw(object, type_info *, destructor) of their library (Itanium
 * C++ ABI, 2.4.3), and the name of the thrown type. type_info is {vtable pointer, const char *name}
 * (2.9.5) and stays in place while the program lives.
 *
 * The object, and with it what(), is not read. It is on the heap, and a program that throws in a
 * loop has it at the same address each time. The record of a throw is read up to 100 ms later, so
 * the object might by then be that of another throw, without a sign.
 */
#pragma once

#include "source/ring/perf_record.h"
#include "source/probe/programs_linux.h"
#include "source/probe/uprobe_linux.h"

#define THROW_PROVIDER "C++"
#define THROW_EVENT "Exception/Start"        /* field ExceptionType, as in .NET */
#define THROW_LIBRARIES_MAX PROGRAM_FILES_MAX
#define THROW_PROGRAMS_MAX PROGRAM_FILES_MAX
#define THROW_TYPE_BYTES 512

struct throw_text {
	char type[THROW_TYPE_BYTES];         /* "std::runtime_error"; "?" = could not be read */
};

bool throw_provider(const char *provider);

/*
 * The C++ libraries (gcc's and clang's) that programs map now, each file once, and the usual one of
 * this system. returns  how many
 */
unsigned throw_libraries(struct programs *of, char paths[THROW_LIBRARIES_MAX][UPROBE_PATH_MAX]);

/*
 * Programs that run now and may have a C++ library linked statically, each file once. filter is
 * ProcessName=NAME or ProcessID=PID, as in a need_event; "" = none. returns  how many
 */
unsigned throw_programs(struct programs *of, const char *filter,
			char paths[THROW_PROGRAMS_MAX][UPROBE_PATH_MAX]);

/*
 * Whether the .NET runtime threw this to let a program's exception leave native frames. An event of
 * .NET reports the program's own exception with its type and message. Source: coreclr,
 * pal/inc/pal.h; seen with 3.1 and 8.
 */
bool throw_is_of_runtime(const struct throw_text *thrown);

struct proc_reader;

/* Read what a hit throws from the process, which may be gone by now. */
void throw_read(struct proc_reader *reader, const struct perf_record *r, struct throw_text *out);
