/* There is none here: see reader.h. */
#include "source/jvm/reader.h"

int jvm_reader_serve(void)
{
	return 1;
}
