#include "source/host/by_id_windows.h"

#include "base/sort.h"

#include <windows.h>

uint32_t by_id_find(const void *items, size_t item_bytes, uint32_t n, uint32_t id)
{
	return id ? sorted_upto(items, n, item_bytes, sizeof(id), id - 1) : 0;
}

bool by_id_has_ended(void *handle)
{
	return handle && WaitForSingleObject(handle, 0) == WAIT_OBJECT_0;
}
