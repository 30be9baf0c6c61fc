/*
 * Does a Java virtual machine keep frame pointers in the code that it compiles?
 *
 * HotSpot does only if told to by -XX:+PreserveFramePointer: in its arguments, in one of the
 * variables that it reads, or in a file of options (-XX:Flags=, -XX:VMOptionsFile=, @arguments).
 * Its performance data repeat what it read from all of them. Without those data (-XX:-UsePerfData),
 * files of options are not examined: then the answer is no, and stacks through compiled code are
 * called doubtful, which errs on the safe side.
 *
 * Source: the java command, "Using the JDK_JAVA_OPTIONS launcher environment variable"; the JVM
 * Tool Interface, "JAVA_TOOL_OPTIONS"; hotspot/share/runtime/arguments.cpp, Arguments::parse(): in
 * the order below, a later option wins. Portable, pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * arguments     the text of /proc/PID/cmdline: strings with a NUL after each
 * environment   the text of /proc/PID/environ, likewise
 */
bool jvm_keeps_frame_pointers(const char *arguments, size_t narguments, const char *environment,
			      size_t nenvironment);

/*
 * The same from the JVM's own performance data: the texts java.rt.vmFlags (from a file of flags)
 * and java.rt.vmArgs (everything else in order, with files and variables expanded).
 */
bool jvm_said_frame_pointers(const char *flags, size_t nflags, const char *arguments,
			     size_t narguments);
