#include "source/list/heap.h"

#include "base/array.h"
#include "base/os.h"
#include "source/host/proc_pid_linux.h"
#include "source/jvm/attach_linux.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RECORDING "recorder-heap"            /* its name in the JVM */

struct heap_java {
	uint32_t pid;
	bool begun;
	char folder[48], path[96];
};

/* The folder's one file, and it; in /tmp, where others can replace neither. */
static void remove_folder(int tmp, const char *name)
{
	int folder = openat(tmp, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *files = folder < 0 ? NULL : fdopendir(folder);
	const struct dirent *file;
	struct stat st;

	if (folder >= 0 && !files)
		close(folder);
	if (!files)
		return;
	if (fstat(folder, &st) == 0 && st.st_uid == geteuid()) {
		while ((file = readdir(files)) != NULL)
			if (strncmp(file->d_name, "java-", 5) == 0)
				unlinkat(folder, file->d_name, 0);
		unlinkat(tmp, name, AT_REMOVEDIR);
	}
	closedir(files);
}

/* Folders of recorders that were killed. */
static void tidy(void)
{
	DIR *tmp = opendir("/tmp");
	const struct dirent *entry;
	unsigned pid;
	int n;

	while (tmp && (entry = readdir(tmp)) != NULL) {
		n = 0;
		if (sscanf(entry->d_name, "recorder-%u-%*6[A-Za-z0-9]%n", &pid, &n) == 1 && n &&
		    !entry->d_name[n] && !os_process_exists(pid))
			remove_folder(dirfd(tmp), entry->d_name);
	}
	if (tmp)
		closedir(tmp);
}

/* What people see of it is the file's name: "all of java-4711.jfr". */
static int make_folder(struct heap_java *j, struct err *err)
{
	tidy();
	snprintf(j->folder, sizeof(j->folder), "/tmp/recorder-%u-XXXXXX", (unsigned)getpid());
	if (!mkdtemp(j->folder)) {
		j->folder[0] = '\0';
		return err_os(err, "make a folder in /tmp for the JVM's recording");
	}
	snprintf(j->path, sizeof(j->path), "%s/java-%u.jfr", j->folder, (unsigned)j->pid);
	return 0;
}

/* The JVM may write one file in the folder, which strangers can neither see nor replace. */
static int make_file(const struct heap_java *j, struct err *err)
{
	struct os_file *file = NULL;
	uint32_t uid = 0;
	int rc = os_open(j->path, OS_CREATE, &file, err);

	os_close(file);
	if (rc)
		return rc;
	if (!proc_pid_user(j->pid, &uid) || (uid != geteuid() &&
	    (chown(j->path, uid, (gid_t)-1) != 0 || chmod(j->folder, 0711) != 0)))
		return err_os(err, "give %s to the user of process %u", j->path, (unsigned)j->pid);
	return 0;
}

/* ERR_UNSUPPORTED, with the first line of what the JVM answered. */
static int refused(const struct heap_java *j, const char *what, const struct buf *answer,
		   struct err *err)
{
	return err_set(err, ERR_UNSUPPORTED, "the JVM with pid %u %s; it says: %.*s",
		       (unsigned)j->pid, what, (int)strcspn(buf_text(answer), "\n"),
		       buf_text(answer));
}

/* By JDK 17 and later nothing else is recorded; earlier ones record by their profile. */
static int start(struct heap_java *j, struct err *err)
{
	static const char *const ways[] = {
		"settings=none"
		" +jdk.JVMInformation#enabled=true +jdk.JVMInformation#period=everyChunk"
		" +jdk.ObjectAllocationSample#enabled=true"
		" +jdk.ObjectAllocationSample#throttle=300/s"
		" +jdk.ObjectAllocationSample#stackTrace=true"
		" +jdk.OldObjectSample#enabled=true"
		" +jdk.OldObjectSample#stackTrace=true"
		" +jdk.OldObjectSample#cutoff=0ns",
		"settings=profile",
	};
	struct buf order = {0}, answer = {0};
	unsigned i;
	int rc;

	/* One that a killed recorder left. */
	rc = jvm_command(j->pid, "JFR.stop name=" RECORDING, &answer, err);
	for (i = 0; !rc && !j->begun && i < COUNT_OF(ways); i++) {
		buf_reset(&answer);
		buf_reset(&order);
		buf_printf(&order, "JFR.start name=" RECORDING " maxsize=64m dumponexit=true "
			   "filename=%s %s", j->path, ways[i]);
		rc = buf_check(&order, "a command to a JVM", err);
		j->begun = true;             /* it may begin after its answer was given up */
		if (!rc)
			rc = jvm_command(j->pid, buf_text(&order), &answer, err);
		if (!rc)
			j->begun = strstr(buf_text(&answer), "Started recording") != NULL;
	}
	if (!rc && !j->begun)
		rc = refused(j, "has no JDK Flight Recorder that starts", &answer, err);
	buf_free(&order);
	buf_free(&answer);
	return rc;
}

int heap_java_begin(uint32_t pid, struct heap_java **out, struct err *err)
{
	struct heap_java *j = calloc(1, sizeof(*j));
	int rc;

	*out = NULL;
	if (!j)
		return err_memory(err, "for a JVM's recording");
	j->pid = pid;
	rc = make_folder(j, err);
	if (!rc)
		rc = make_file(j, err);
	if (!rc)
		rc = start(j, err);
	if (rc)
		heap_java_free(j);
	else
		*out = j;
	return rc;
}

int heap_java_end(struct heap_java *j, const char **path, struct err *err)
{
	struct buf order = {0}, answer = {0};
	struct os_file_info file = {0};
	int rc;

	*path = j->path;
	if (!os_process_exists(j->pid)) {    /* then it has written it at its exit */
		rc = os_path_info(j->path, &file, err);
		return rc || file.size_bytes ? rc : err_set(err, ERR_NOT_FOUND, "process %u was "
			"killed before its JVM could write what it had recorded of its objects",
			(unsigned)j->pid);
	}
	buf_printf(&order, "JFR.stop name=" RECORDING " filename=%s", j->path);
	rc = buf_check(&order, "a command to a JVM", err);
	j->begun = false;
	if (!rc)
		rc = jvm_command(j->pid, buf_text(&order), &answer, err);
	if (!rc && !strstr(buf_text(&answer), "Stopped recording"))
		rc = refused(j, "did not write its recording", &answer, err);
	buf_free(&order);
	buf_free(&answer);
	return rc;
}

void heap_java_free(struct heap_java *j)
{
	struct buf answer = {0};
	struct err unused;

	if (!j)
		return;
	if (j->begun)
		jvm_command(j->pid, "JFR.stop name=" RECORDING, &answer, &unused);
	if (j->folder[0]) {
		unlink(j->path);
		rmdir(j->folder);
	}
	buf_free(&answer);
	free(j);
}
