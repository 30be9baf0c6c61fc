/*
 * The file of an image that some process loaded: at its path, or on the symbol path. Any thread.
 */
#pragma once

#include "symbol/pe.h"
#include "symbol/reader.h"

/*
 * key      what identifies it: the PDB's GUID and age, or dev = timestamp and ino = SizeOfImage
 * file     open, for os_close(); *bytes are its
 * returns  false: it is not there, or another is. Servers are not asked
 */
bool pe_image_find(const struct symbol_env *env, const struct object_key *key,
		   struct os_file **file, struct bytes *bytes, struct pe_head *head);
