/*
 * Names for frames in PE images: from the image, and from the PDB that its linker wrote, each only
 * if it is the very one that was loaded.
 *
 * Both are looked for at the image's own path and in the directories of --symbol-path and
 * _NT_SYMBOL_PATH, flat (DIR/NAME) and as in symbol stores (DIR/NAME/IDENTITY/NAME), with the name
 * as recorded and in lower case; then, on Windows, at the servers of that path. dbghelp is asked
 * for names that none of this gives (dbghelp.h says why last), if it agrees with .pdata on where
 * the function begins.
 *
 * An image or PDB is identified by the PDB's GUID and age. Some images have none, or a live session
 * does not tell it: they are identified by timestamp and size, and their PDB is the one they name
 * themselves. Source of the store's layout: Microsoft's "Using SymStore".
 */
#include "symbol/dbghelp.h"
#include "symbol/pdb.h"
#include "symbol/pe.h"
#include "symbol/reader.h"
#include "symbol/symbol_path.h"

#include "base/bytes.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((uint64_t)4 << 30)
#define PATH_MAX_BYTES 4096u

struct pe_table {
	struct symbol_table base;
	struct rva_index *index;
	struct dbghelp *dbghelp;
	char *image;                    /* for dbghelp, until it has loaded it; NULL = do not ask */
	uint64_t module;                     /* dbghelp's; 0 = none */
	struct dbghelp_function function;    /* its last answer */
};

/* The image and its PDB, whichever are found. */
struct finds {
	const struct symbol_env *env;
	const struct object_key *key;
	struct os_file *image_file, *pdb_file;
	struct bytes image, pdb;
	struct pe_head head;                 /* of the image; valid with image_file */
	struct pdb_head pdb_head;
	char image_path[PATH_MAX_BYTES];     /* of image_file */
	enum dbghelp_answer answer;          /* from the servers, if asked */
};

static bool reads(const struct object *object)
{
	return object->key.kind == OBJECT_PE;
}

/* ---- identities ------------------------------------------------------------------------------ */

static uint32_t key_age(const struct object_key *key)
{
	return le32(key->build_id + GUID_BYTES);
}

static bool has_guid(const struct object_key *key)
{
	return key->build_id_bytes == GUID_BYTES + 4;
}

static bool same_guid(const struct object_key *key, const uint8_t guid[GUID_BYTES], uint32_t age)
{
	return has_guid(key) && memcmp(key->build_id, guid, GUID_BYTES) == 0 && key_age(key) == age;
}

/* The wanted PDB's identity: the object's, else that of the image found for it. */
static const uint8_t *wanted_guid(const struct finds *f, uint32_t *age)
{
	*age = has_guid(f->key) ? key_age(f->key) : f->head.pdb_age;
	if (has_guid(f->key))
		return f->key->build_id;
	return f->image_file && f->head.has_pdb ? f->head.pdb_guid : NULL;
}

static bool is_wanted_pdb(const struct finds *f)
{
	uint32_t age;
	const uint8_t *guid = wanted_guid(f, &age);

	return guid && memcmp(guid, f->pdb_head.guid, GUID_BYTES) == 0 && age == f->pdb_head.age;
}

static bool same_image(const struct object_key *key, const struct pe_head *head)
{
	if (has_guid(key))
		return head->has_pdb && same_guid(key, head->pdb_guid, head->pdb_age);
	return key->ino && key->dev == head->timestamp && key->ino == head->image_bytes;
}

/* The name of the store's directory: GUID and age, or timestamp and size. */
static void identity_text(const struct finds *f, bool pdb, char out[64])
{
	uint32_t age;
	const uint8_t *g = wanted_guid(f, &age), *end = g ? g + GUID_BYTES : NULL;
	int n;

	if (!pdb || !g) {
		snprintf(out, 64, "%08X%x", (unsigned)f->key->dev, (unsigned)f->key->ino);
		return;
	}
	n = snprintf(out, 64, "%08X%04X%04X", le32(g), le16(g + 4), le16(g + 6));
	for (g += 8; g < end; g++)
		n += snprintf(out + n, 64 - (size_t)n, "%02X", *g);
	snprintf(out + n, 64 - (size_t)n, "%X", (unsigned)age);
}

/* ---- opening candidates ---------------------------------------------------------------------- */

static void close_file(struct os_file **file)
{
	os_close(*file);
	*file = NULL;
}

static bool open_file(const char *path, struct os_file **file, struct bytes *out)
{
	struct os_file_info info;

	if (os_open(path, OS_READ_PLAIN, file, NULL))
		return false;
	if (os_file_info(*file, &info, NULL) || info.size_bytes > FILE_MAX_BYTES) {
		close_file(file);
		return false;
	}
	*out = bytes_of_file(*file, info.size_bytes);
	return true;
}

static bool try_image(struct finds *f, const char *path)
{
	if (!open_file(path, &f->image_file, &f->image))
		return false;
	if (!pe_head_read(&f->image, &f->head, NULL) && same_image(f->key, &f->head)) {
		snprintf(f->image_path, sizeof(f->image_path), "%s", path);
		return true;
	}
	close_file(&f->image_file);
	return false;
}

static bool try_pdb(struct finds *f, const char *path)
{
	if (!open_file(path, &f->pdb_file, &f->pdb))
		return false;
	if (!pdb_head_read(&f->pdb, &f->pdb_head, NULL) && is_wanted_pdb(f))
		return true;
	close_file(&f->pdb_file);
	return false;
}

typedef bool try_path(struct finds *f, const char *path);

/* Try one directory of the symbol path, n bytes long, in both layouts. */
static bool try_directory(struct finds *f, const char *dir, size_t n, const char *name, bool pdb)
{
	try_path *try = pdb ? try_pdb : try_image;
	char path[PATH_MAX_BYTES], identity[64];
	int wrote = snprintf(path, sizeof(path), "%.*s/%s", (int)n, dir, name);

	if (wrote < 0 || (size_t)wrote >= sizeof(path))
		return false;
	if (try(f, path))
		return true;
	identity_text(f, pdb, identity);
	wrote = snprintf(path, sizeof(path), "%.*s/%s/%s/%s", (int)n, dir, name, identity, name);
	return wrote > 0 && (size_t)wrote < sizeof(path) && try(f, path);
}

static bool try_directories(struct finds *f, const char *name, bool pdb)
{
	const char *at = f->env->path;
	struct symbol_element element, dir;
	unsigned i;

	while (symbol_path_next(&at, &element))
		for (i = 0; symbol_path_directory(&element, i, &dir); i++)
			if (dir.nbytes < PATH_MAX_BYTES &&
			    try_directory(f, dir.text, dir.nbytes, name, pdb))
				return true;
	return false;
}

/* Try the name as recorded, then in lower case: symbol paths on Linux distinguish them. */
static bool find_named(struct finds *f, const char *name, bool pdb)
{
	char small[PE_PDB_NAME_MAX];
	size_t n = strlen(name), i;

	if (!n || n >= sizeof(small))
		return false;
	for (i = 0; i <= n; i++)
		small[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 32) : name[i];
	return try_directories(f, name, pdb) ||
	       (strcmp(small, name) && try_directories(f, small, pdb));
}

static void ask_servers(struct finds *f, const struct dbghelp_file *file)
{
	struct buf path = {0};

	f->answer = dbghelp_fetch(f->env->dbghelp, file, &path);
	if (f->answer == DBGHELP_DONE && !path.failed)
		(file->guid ? try_pdb : try_image)(f, buf_text(&path));
	buf_free(&path);
}

static void find_image(struct finds *f)
{
	const char *path = f->key->path;
	const struct dbghelp_file file = {.name = text_base_name(path),
					  .timestamp = (uint32_t)f->key->dev,
					  .image_bytes = (uint32_t)f->key->ino};

	if (!try_image(f, path) && !find_named(f, file.name, false) && !has_guid(f->key) &&
	    f->key->ino)
		ask_servers(f, &file);
}

bool pe_image_find(const struct symbol_env *env, const struct object_key *key,
		   struct os_file **file, struct bytes *bytes, struct pe_head *head)
{
	struct finds f = {.env = env, .key = key};

	if (!try_image(&f, key->path) && !find_named(&f, text_base_name(key->path), false))
		return false;
	*file = f.image_file;
	*bytes = f.image;
	*head = f.head;
	return true;
}

/* Try the name that the image gives, else the image's own; also beside the image. */
static void find_pdb(struct finds *f)
{
	const char *base = text_base_name(f->key->path), *dot = strrchr(base, '.');
	char name[PE_PDB_NAME_MAX], beside[PATH_MAX_BYTES];
	size_t dir_bytes = (size_t)(base - f->key->path);
	uint32_t age;

	if (!wanted_guid(f, &age))
		return;
	snprintf(name, sizeof(name), "%.*s.pdb",
		 (int)(dot ? dot - base : (ptrdiff_t)strlen(base)) % 250, base);
	if (f->image_file && *text_base_name(f->head.pdb_name))
		snprintf(name, sizeof(name), "%.250s", text_base_name(f->head.pdb_name));
	if (dir_bytes + strlen(name) < sizeof(beside)) {
		snprintf(beside, sizeof(beside), "%.*s%s", (int)dir_bytes, f->key->path, name);
		if (try_pdb(f, beside))
			return;
	}
	if (!find_named(f, name, true)) {
		const struct dbghelp_file file = {
			.name = name, .guid = wanted_guid(f, &age), .age = age};

		ask_servers(f, &file);
	}
}

/* ---- the reader ------------------------------------------------------------------------------ */

/*
 * In a PDB without private functions the public names reach too far, unless the image says where
 * its functions end: without the image they are not used.
 */
static int index_finds(const struct finds *f, struct rva_index *index, struct err *err)
{
	int rc = 0;

	if (f->pdb_file && (f->image_file || !f->pdb_head.stripped))
		rc = pdb_functions(&f->pdb, index, err);
	if (!rc && f->image_file)
		rc = pe_functions(&f->image, &f->head, index, err);
	if (!rc && f->image_file)
		rc = pe_bounds(&f->image, &f->head, index, err);
	return rc ? rc : rva_index_finish(index, err);
}

static int open_table(const struct finds *f, struct pe_table **out, struct err *err)
{
	struct pe_table *t = calloc(1, sizeof(*t));
	int rc;

	if (t)
		t->index = rva_index_new();
	if (!t || !t->index) {
		free(t);
		return err_memory(err, "for its symbols");
	}
	rc = index_finds(f, t->index, err);
	if (!rc && !rva_index_count(t->index) && !(f->env->dbghelp && f->image_file))
		rc = err_set(err, ERR_NOT_FOUND, "%s: it names none of its functions",
			     f->key->path);
	if (rc) {
		rva_index_free(t->index);
		free(t);
		return rc;
	}
	*out = t;
	return 0;
}

static int open_pe(const struct symbol_env *env, const struct object *object, uint32_t pid,
		   struct symbol_table **out, struct err *err)
{
	struct finds f = {.env = env, .key = &object->key};
	struct pe_table *t = NULL;
	int rc;

	(void)pid;
	find_image(&f);
	find_pdb(&f);
	if (!f.image_file && !f.pdb_file)
		rc = err_set(err, ERR_NOT_FOUND,
			     "%s: neither the image nor its PDB is at its path or in --symbol-path",
			     object->key.path);
	else
		rc = open_table(&f, &t, err);
	/* Our reader knows all of a PDB; without one, dbghelp may know other debug information. */
	if (!rc && env->dbghelp && f.image_file && !f.pdb_file) {
		t->dbghelp = env->dbghelp;
		t->image = text_dup(f.image_path, SIZE_MAX);
	}
	os_close(f.image_file);
	os_close(f.pdb_file);
	if (rc)
		return rc;
	if (f.answer == DBGHELP_NO_SYMSRV)
		t->base.note = "the symbol path names a server, but System32 has no symsrv.dll (it "
			       "comes with Debugging Tools for Windows): names come from local "
			       "files only";
	else if (f.answer == DBGHELP_LATE)
		t->base.note = "a symbol server takes too long: some names will be missing; the "
			       "files that it sends meanwhile are used next time";
	t->base.reader = &pe_reader;
	t->base.bytes = sizeof(*t) + rva_index_bytes(t->index);
	*out = &t->base;
	return 0;
}

/* Where .pdata has another function, dbghelp's name belongs to the one before. */
static bool ask_dbghelp(struct pe_table *t, uint32_t rva, const struct rva_function *range,
			struct symbol *out)
{
	struct dbghelp_function *f = &t->function;

	if (t->image)
		t->module = dbghelp_load(t->dbghelp, t->image);
	free(t->image);
	t->image = NULL;
	if (!dbghelp_name(t->dbghelp, t->module, rva, f))
		return false;
	if (range ? f->rva != range->rva : !f->nbytes || rva - f->rva >= f->nbytes)
		return false;
	*out = (struct symbol){.offset = f->rva, .name = f->name};
	return true;
}

static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	struct pe_table *t = (struct pe_table *)table;
	struct rva_function function;
	bool bounded;

	if (offset > UINT32_MAX)
		return false;
	bounded = rva_index_range(t->index, (uint32_t)offset, &function);
	if (!bounded || !function.name)
		return ask_dbghelp(t, (uint32_t)offset, bounded ? &function : NULL, out);
	*out = (struct symbol){.offset = function.rva, .name = function.name};
	return true;
}

static void close_pe(struct symbol_table *table)
{
	struct pe_table *t = (struct pe_table *)table;

	dbghelp_unload(t->dbghelp, t->module);
	rva_index_free(t->index);
	free(t->image);
	free(t);
}

const struct symbol_reader pe_reader = {
	.reads = reads,
	.open = open_pe,
	.find = find,
	.close = close_pe,
};
