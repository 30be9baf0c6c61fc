/*
 * Just my code, as PerfView means it: that in the directory of a program's executable.
 *
 * The executable of a process is the module that is called as the process is. Names of processes
 * are base names of their executables without .exe.
 */
#pragma once

#include "model/incident.h"

/*
 * Which modules stand in the directory of the executable of some process with samples.
 *
 * out      one for each module, to be freed; NULL = no executable is known
 * returns  0 or ERR_MEMORY
 */
int my_code_find(const struct incident *in, bool **out);
