/*
 * Where C++ programs throw: __cxa_throw(object, type_info *, destructor) of their library (Itanium
 * C++ ABI, 2.4.3), and the name of what they throw: type_info is {vtable pointer, const char *name}
 * (2.9.5), and lies still for as long as the program lives. The object itself, and with it what()
 * says, does not: it is on the heap, and a program that throws in a loop has it at the same address
 * each time. The record of a throw is read up to 100 ms later, so what would be found there may be
 * of another throw, and nothing tells.
 */
#pragma once

#include "source/ring/perf_record.h"
#include "source/probe/uprobe_linux.h"

#define THROW_PROVIDER "C++"
#define THROW_EVENT "Exception/Start"        /* field ExceptionType, as .NET has it */
#define THROW_LIBRARIES_MAX 8u
#define THROW_PROGRAMS_MAX 8u
#define THROW_TYPE_BYTES 512

struct throw_text {
	char type[THROW_TYPE_BYTES];         /* "std::runtime_error"; "?" = could not be read */
};

bool throw_provider(const char *provider);

/*
 * The C++ libraries (of gcc, of clang) that programs map now, each file once, and the usual one of
 * this system; returns how many. Reads /proc: not the source's thread.
 */
unsigned throw_libraries(char paths[THROW_LIBRARIES_MAX][UPROBE_PATH_MAX]);

/*
 * Programs that run now, each file once: those that could have a library of their own in them,
 * linked statically. filter is ProcessName=NAME or ProcessID=PID, as of a need_event; "" = none.
 * Returns how many. Reads /proc.
 */
unsigned throw_programs(const char *filter, char paths[THROW_PROGRAMS_MAX][UPROBE_PATH_MAX]);

/*
 * Of the runtime of .NET: the way in which an exception of a program leaves native frames. The
 * program's own is told by an event of .NET, with its type and message. Source: coreclr,
 * pal/inc/pal.h; seen with 3.1 and 8.
 */
bool throw_is_of_runtime(const struct throw_text *thrown);

/* What a hit there throws, read from the process, which may be gone by now. */
void throw_read(const struct perf_record *r, struct throw_text *out);
