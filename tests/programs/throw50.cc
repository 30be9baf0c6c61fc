// A C++ exception thrown through 50 frames, again and again. Our unwinder must walk what the
// unwinder of the language walks. Built by stacks_linux.sh with g++; throw50 SECONDS.
#include <cstdlib>
#include <ctime>
#include <stdexcept>

static volatile unsigned sink;

__attribute__((noinline)) static unsigned throw_below(unsigned frames)
{
	if (!frames)
		throw std::runtime_error("from below");
	unsigned sum = throw_below(frames - 1);  // not a tail call
	sink = sink + sum;
	return sum + 1;
}

__attribute__((noinline)) static void catch_above()
{
	try {
		sink = throw_below(50);
	} catch (const std::runtime_error &) {
		sink = sink + 1;
	}
}

int main(int argc, char **argv)
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	const time_t end = now.tv_sec + (argc > 1 ? atoi(argv[1]) : 1);
	do {
		for (int i = 0; i < 1000; i++)
			catch_above();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end);
	return 0;
}
