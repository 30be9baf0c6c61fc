// What tests/cli/lines_linux.sh compiles with -g -O2 and records: functions that are inlined two and
// three levels deep, in a namespace, from a template, and into a lambda. Ends after argv[1] seconds.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace mix {

static inline uint64_t rotate(uint64_t v, int by)
{
	return v << by | v >> (64 - by);
}

template <int N> inline uint64_t stir(uint64_t v)
{
	for (int i = 0; i < N; i++)
		v = rotate(v * 0x9e3779b97f4a7c15ULL, 17 + i) ^ v;
	return v;
}

struct state {
	uint64_t v = 1;

	inline void step(uint64_t with)
	{
		v ^= stir<24>(v + with);
	}
};

__attribute__((noinline)) uint64_t spin(unsigned rounds)
{
	state s;

	for (unsigned i = 0; i < rounds; i++)
		s.step(i);
	return s.v;
}

}

__attribute__((noinline)) static uint64_t sorted(uint64_t seed)
{
	std::vector<uint64_t> all(3000);

	for (auto &v : all)
		v = seed = mix::stir<2>(seed);
	std::sort(all.begin(), all.end(), [](uint64_t a, uint64_t b) {
		return mix::rotate(a, 7) < mix::rotate(b, 7);
	});
	return all[all.size() / 2];
}

int main(int argc, char **argv)
{
	using clock = std::chrono::steady_clock;
	auto end = clock::now() + std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 2);
	uint64_t sum = 0;

	while (clock::now() < end) {
		sum += mix::spin(20000);
		sum += sorted(sum);
	}
	std::printf("%llu\n", static_cast<unsigned long long>(sum));
	return 0;
}
