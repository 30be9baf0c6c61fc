/* The frame reader of V8, as Node.js has it: JavaScript functions, interpreted and compiled. */
#pragma once

#include "managed/reader.h"

extern const struct frame_reader v8_reader;
