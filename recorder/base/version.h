/* The program's version, as --version prints it and incidents keep it. */
#pragma once

#define RECORDER_VERSION "0.1.0"
#define RECORDER_DATE "2026-11-22"          /* of this version; manual pages print it */
