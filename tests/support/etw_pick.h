/* A record of a known class, by what stays the same when other classes come. */
#pragma once

#include "source/etw/class.h"

/* Of the provider whose GUID begins with this byte; false: it has no such class. */
static inline bool etw_pick(uint8_t provider, uint8_t key, struct etw_record *record)
{
	const struct etw_class *classes;
	uint32_t t, i, n;

	for (t = 0; (classes = etw_class_table(t, &n, &record->guid)); t++) {
		for (i = 0; i < n && record->guid.bytes[0] == provider; i++) {
			if ((uint8_t)classes[i].key != key)
				continue;
			record->opcode = key;
			record->id = classes[i].key;
			return true;
		}
	}
	return false;
}
