/*
 * hung_mount DIR FILE [NAME [DEVICE]]: mount a file system on DIR that holds a copy of FILE, named
 * NAME or "program", whose device is called DEVICE, and whose server stops answering on SIGUSR1,
 * like NFS when the network is gone. SIGUSR2 lets it answer again. Ends, and unmounts, on SIGTERM.
 *
 * Prints "ready" once it is mounted. Exit 77: no FUSE, or not allowed here. Needs root.
 *
 * Source: linux/fuse.h; the kernel's Documentation/filesystems/fuse.rst. One thread answers one
 * request at a time; nothing is written, and there is only the one file.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOT = FUSE_ROOT_ID, PROGRAM = 2, NOT_HERE = 77, VALID_S = 0, BUFFER = 1 << 18 };

static volatile sig_atomic_t hangs, ended;
static int fuse, file;
static struct stat program;
static const char *file_name = "program";

static void on_signal(int number)
{
	if (number == SIGTERM)
		ended = 1;
	else
		hangs = number == SIGUSR1;
}

static void answer(const struct fuse_in_header *in, int error, const void *bytes, size_t n)
{
	static char message[BUFFER];
	struct fuse_out_header *out = (struct fuse_out_header *)message;

	*out = (struct fuse_out_header){.len = (uint32_t)(sizeof(*out) + n), .error = -error,
					.unique = in->unique};
	if (n)
		memcpy(message + sizeof(*out), bytes, n);
	if (write(fuse, message, out->len) < 0 && errno != ENOENT)
		perror("hung_mount: answer");
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node, .nlink = 1, .blksize = 4096,
		.mode = node == ROOT ? S_IFDIR | 0755 : S_IFREG | 0755,
		.size = node == ROOT ? 0 : (uint64_t)program.st_size,
		.mtime = (uint64_t)program.st_mtime,
	};
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = {.nodeid = PROGRAM, .entry_valid = VALID_S,
				     .attr_valid = VALID_S, .attr = attributes(PROGRAM)};

	if (in->nodeid == ROOT && strcmp(name, file_name) == 0)
		answer(in, 0, &out, sizeof(out));
	else
		answer(in, ENOENT, NULL, 0);
}

static void read_file(const struct fuse_in_header *in, const struct fuse_read_in *want)
{
	static char bytes[BUFFER - sizeof(struct fuse_out_header)];
	size_t n = want->size < sizeof(bytes) ? want->size : sizeof(bytes);
	ssize_t got = pread(file, bytes, n, (off_t)want->offset);

	answer(in, got < 0 ? errno : 0, bytes, got < 0 ? 0 : (size_t)got);
}

static void serve(const struct fuse_in_header *in)
{
	const void *body = in + 1;
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION, .max_readahead = 65536,
				     .max_write = 4096};
	struct fuse_attr_out attr = {.attr = attributes(in->nodeid)};
	struct fuse_open_out open_out = {0};

	switch (in->opcode) {
	case FUSE_INIT:
		answer(in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		look_up(in, body);
		break;
	case FUSE_GETATTR:
		answer(in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		answer(in, 0, &open_out, sizeof(open_out));
		break;
	case FUSE_READ:
		read_file(in, body);
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
		answer(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;                       /* no answer is expected */
	default:
		answer(in, ENOSYS, NULL, 0);
	}
}

static int not_here(const char *why)
{
	fprintf(stderr, "hung_mount: ");
	perror(why);
	return NOT_HERE;
}

int main(int argc, char **argv)
{
	static char request[BUFFER];
	struct sigaction action = {.sa_handler = on_signal};
	char options[100];

	if (argc < 3 || argc > 5)
		return 2;
	if (argc > 3)
		file_name = argv[3];
	file = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &program) != 0) {
		perror(argv[2]);
		return 1;
	}
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0)
		return not_here("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other",
		 fuse);
	if (mount(argc > 4 ? argv[4] : "hung_mount", argv[1], "fuse.hung_mount",
		  MS_NOSUID | MS_NODEV, options) != 0)
		return not_here("mount");
	printf("ready\n");
	fflush(stdout);
	while (!ended) {
		struct pollfd p = {.fd = fuse, .events = POLLIN};

		if (hangs)
			usleep(20000);
		else if (poll(&p, 1, 50) <= 0)
			continue;
		if (hangs)
			continue;
		if (read(fuse, request, sizeof(request)) > 0)
			serve((const struct fuse_in_header *)request);
	}
	umount2(argv[1], MNT_DETACH);
	return 0;
}
