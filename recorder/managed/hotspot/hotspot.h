/* The frame reader of HotSpot, the Java virtual machine of OpenJDK: 8 and newer, x86-64. */
#pragma once

#include "managed/reader.h"

extern const struct frame_reader hotspot_reader;
