#include "source/host/by_id_windows.h"

#include <string.h>

#include <windows.h>

uint32_t by_id_find(const void *items, size_t item_bytes, uint32_t n, uint32_t id)
{
	uint32_t low = 0, high = n, number;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		memcpy(&number, (const char *)items + middle * item_bytes, sizeof(number));
		if (number < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool by_id_has_ended(void *handle)
{
	return handle && WaitForSingleObject(handle, 0) == WAIT_OBJECT_0;
}
