/* The frame reader of CPython 2.7 and 3.6 to 3.15: reader.h. */
#pragma once

#include "managed/reader.h"

extern const struct frame_reader python_reader;
