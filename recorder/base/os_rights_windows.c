/* Windows lends no rights by a program's file: see os.h. */
#include "base/os.h"

bool os_rights_lent(void)
{
	return false;
}

void os_rights_give_up(void)
{
}

void os_rights_keep_used(void)
{
}

bool os_forbid_unused_calls(void)
{
	return true;
}

void os_rights_lower(void)
{
}

void os_rights_raise(void)
{
}
