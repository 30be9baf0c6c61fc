/*
 * Libraries that the program does not need, loaded when somebody wants what they do (dlopen(3)).
 * A list of functions F(one) F(two) gives a struct of pointers and an array of names:
 *
 *	struct some { SOME(LIBRARY_MEMBER) };
 *	static const char *const names[] = {SOME(LIBRARY_NAME) NULL};
 */
#pragma once

#define LIBRARY_MEMBER(name) __typeof__(name) *name;
#define LIBRARY_NAME(name) #name,

/*
 * Load a library, which is never unloaded. Any thread.
 *
 * names      of functions, ending in NULL
 * functions  a struct of as many pointers to functions, in their order
 * returns    the library's name or the function's that is missing; NULL = nothing
 */
const char *library_load(const char *file, const char *const *names, void *functions);
