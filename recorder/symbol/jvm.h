/*
 * Does a Java virtual machine keep frame pointers in the code that it compiles?
 *
 * HotSpot's does not, unless told to by -XX:+PreserveFramePointer: in its arguments, in one of the
 * variables that it reads, or in a file of options (-XX:Flags=, -XX:VMOptionsFile=, @arguments). What it
 * has read from all of them it says itself in its performance data; without these (-XX:-UsePerfData),
 * files of options are not looked into: then the answer is no, and stacks through compiled code are called
 * doubtful, which is the safe way to err.
 *
 * Source: the java command, "Using the JDK_JAVA_OPTIONS launcher environment variable"; the JVM Tool
 * Interface, "JAVA_TOOL_OPTIONS"; hotspot/share/runtime/arguments.cpp, Arguments::parse(): in the
 * order below, a later option wins. Portable, pure; any thread.
 */
#ifndef SYMBOL_JVM_H
#define SYMBOL_JVM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * arguments     the text of /proc/PID/cmdline: strings with a NUL after each
 * environment   of /proc/PID/environ, likewise
 */
bool jvm_keeps_frame_pointers(const char *arguments, size_t narguments, const char *environment,
			      size_t nenvironment);

/*
 * The same from what the JVM says of itself: the texts java.rt.vmFlags (of a file of flags) and
 * java.rt.vmArgs (of all else, files opened and variables included, in order) of its performance data.
 */
bool jvm_said_frame_pointers(const char *flags, size_t nflags, const char *arguments, size_t narguments);

#endif
