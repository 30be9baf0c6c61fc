/* The program's version, as --version prints it and incidents keep it. */
#ifndef VERSION_H
#define VERSION_H

#define RECORDER_VERSION "0.1.0"

#endif
