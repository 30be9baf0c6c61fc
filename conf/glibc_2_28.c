/*
 * Linked into the portable program only (Makefile: portable), with --wrap for each of these: the
 * glibc that it is linked against has newer versions of them than glibc 2.28. The old versions of
 * the four report errors to a program's own matherr(), and there is none.
 */
#include <sys/syscall.h>
#include <unistd.h>

#define OLD(name) ".symver old_" #name ", " #name "@GLIBC_2.2.5\n"
__asm__(OLD(exp) OLD(log) OLD(log2) OLD(pow));

double old_exp(double x);
double old_log(double x);
double old_log2(double x);
double old_pow(double x, double y);

double __wrap_exp(double x);
double __wrap_log(double x);
double __wrap_log2(double x);
double __wrap_pow(double x, double y);
int __wrap_gettid(void);

double __wrap_exp(double x) { return old_exp(x); }
double __wrap_log(double x) { return old_log(x); }
double __wrap_log2(double x) { return old_log2(x); }
double __wrap_pow(double x, double y) { return old_pow(x, y); }
int __wrap_gettid(void) { return (int)syscall(SYS_gettid); }
