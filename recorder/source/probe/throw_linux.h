/*
 * Where C++ and Java programs throw, and what.
 *
 * C++: __cxa_throw(object, type_info *, destructor) of its library (Itanium C++ ABI, 2.4.3), and
 * the name of the thrown type. type_info is {vtable pointer, const char *name} (2.9.5) and stays in
 * place while the program lives. The object, and with it what(), is not read. It is on the heap,
 * and a program that throws in a loop has it at the same address each time. The record of a throw
 * is read up to 100 ms later, so the object might by then be that of another throw, without a sign.
 *
 * Java, in libjvm.so:
 *
 *	JVM_FillInStackTrace(env, object)  each exception calls it once, when it is made: its
 *	                                   constructor notes the stack. Exported by every JVM
 *	report_java_out_of_memory(text)    OutOfMemoryErrors that the JVM keeps ready
 *	throw_StackOverflowError(thread)   the other one that is made without a constructor; of
 *	                                   compiled code, the interpreter and native code
 *
 * The last two are in the file's table of symbols, which most builds have. Where exceptions are
 * caught is no place to see them: compiled code jumps there by itself. Not seen are those that note
 * no stack (writableStackTrace false), and those that compiled code has ready for what the
 * processor traps (-XX:+OmitStackTraceInFastThrow).
 */
#pragma once

#include "source/ring/perf_record.h"
#include "source/probe/programs_linux.h"
#include "source/probe/uprobe_linux.h"

/* Fields ExceptionType and, of Java, ExceptionMessage, as in .NET. */
#define THROW_EVENT "Exception/Start"
#define THROW_LIBRARIES_MAX PROGRAM_FILES_MAX
#define THROW_PROGRAMS_MAX PROGRAM_FILES_MAX
#define THROW_TYPE_BYTES 512
#define THROW_MESSAGE_BYTES 200

#define THROW_PLACES_MAX PROGRAM_FUNCTIONS_MAX       /* of a provider in a file */

enum throw_kind {
	THROW_NONE,
	THROW_CXX,
	THROW_JAVA,                          /* whoever knows the JVM reads the object */
	THROW_JAVA_MEMORY,
	THROW_JAVA_STACK,
};

struct throw_text {
	char type[THROW_TYPE_BYTES];         /* "std::runtime_error"; "?" = could not be read */
	char message[THROW_MESSAGE_BYTES];   /* "" = none, or not read */
};

bool throw_provider(const char *provider);
bool throw_is_java(const char *provider);
/* The functions of a provider where probes go; NULL behind the last one. */
const char *throw_function(const char *provider, unsigned i);
/* Of the probe "PATH:FUNCTION" of a provider. */
enum throw_kind throw_kind_of(const char *provider, const char *name);

/*
 * The libraries of a provider that programs map now, each file once, and the usual ones of this
 * system: gcc's and clang's for C++, libjvm.so. returns  how many; files: the same
 */
unsigned throw_libraries(struct programs *of, const char *provider,
			 char paths[THROW_LIBRARIES_MAX][UPROBE_PATH_MAX],
			 struct program_files *files);
/* The same of Java, to be looked for by programs_ask(). */
void throw_java_library(struct program_library *out);

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

/* Read what a hit throws, but at THROW_JAVA, from the process, which may be gone by now. */
void throw_read(enum throw_kind kind, struct proc_reader *reader, const struct perf_record *r,
		struct throw_text *out);
/*
 * The object of a hit of THROW_JAVA. Its argument is a handle, the place on the thread's stack
 * where the reference is, so it is from the moment of the hit. false: the copy of the stack ends
 * before.
 */
bool throw_java_object(const struct perf_record *r, uint64_t *object);

/* The fields of a throw, as many as there are texts; returns how many, 2 at most. */
unsigned throw_fields(const char *type, const char *message, struct event_field *out);
