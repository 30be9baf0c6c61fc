/* Converts an EVENT_RECORD of ProcessTrace() to struct etw_record. Windows only. */
#pragma once

#include "source/etw/record.h"

#include <windows.h>
#include <evntcons.h>

/*
 * Borrows the event's payload and items. The session must deliver raw timestamps.
 * Source: docs, EVENT_RECORD and EVENT_HEADER.
 */
void etw_record_of(const EVENT_RECORD *event, struct etw_record *out);
