// The partitioned cuckoo filter with fingerprints of 16 bits in buckets of 4: a build of all keys at once, lookups of keys
// that are there, and of absent ones, each in one call.
//
//   partitioned ITEMS LOOKUPS PERCENT PARTITIONS THREADS scalar|avx2
//
// Prints million operations a second of each, the bits an item, how many lookups were wrong, and how many builds failed.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include <task/task_queue.hpp>

#include <cuckoo/cuckoo_filter.hpp>

using namespace filters;
using namespace filters::parameter;

// Sizes and hashes as its authors measure it.
template <SIMD simd>
using Ways = OptimizationParameter<AddressingMode::Lemire, HashingMode::Murmur, Partitioning::Enabled,
                                   RegisterSize::_64bit, simd, MultiThreading::Enabled>;

using Lanes = cuckoo::CuckooFilterParameter<16, cuckoo::Variant::Standard, 4, 0, 0>;

static double timed(auto act) {
    const auto begin = std::chrono::steady_clock::now();
    act();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

template <SIMD simd>
static void run(size_t items, size_t lookups, size_t percent, size_t partitions, size_t threads) {
    std::mt19937_64 random(1);
    std::vector<uint64_t> keys(items), there(lookups), absent(lookups);
    for (auto &key : keys) key = random() | 1ull << 63;
    for (auto &key : there) key = keys[random() % items];
    for (auto &key : absent) key = random() >> 1;

    Filter<FilterType::Cuckoo, Lanes, 16, Ways<simd>> filter(percent, partitions, threads, 4 * threads);
    bool fits = false;
    size_t found = 0, falsely = 0;
    const double fill = timed([&] { fits = filter.construct(keys.data(), items); });
    const double hit = timed([&] { found = filter.count(there.data(), lookups); });
    const double miss = timed([&] { falsely = filter.count(absent.data(), lookups); });
    const double bits = 8.0 * filter.size() / items;
    printf("%.2f %.2f %.2f %.3f %zu %.8f %zu\n", items / fill / 1e6, lookups / hit / 1e6, lookups / miss / 1e6, bits,
           lookups - found, double(falsely) / lookups, filter.retries() + !fits);
}

int main(int count, char **words) {
    if (count != 7) return 2;
    size_t n[5];
    for (int at = 0; at < 5; at++) n[at] = strtoull(words[at + 1], nullptr, 10);
    const bool is_scalar = !strcmp(words[6], "scalar");
    (is_scalar ? run<SIMD::Scalar> : run<SIMD::AVX2>)(n[0], n[1], n[2], n[3], n[4]);
}
