/* linmdp_draws.h: random numbers without a state of their own.
 *
 * Each use takes a key, the hash of the seed and of how many keys were taken before; its numbers are hashes of the key and
 * their index. They can be asked for again, and another program that counts its uses alike has the same numbers.
 */
#ifndef LINMDP_DRAWS_H
#define LINMDP_DRAWS_H

#include <stdint.h>

/* A fixed mixing of 32 bits: neighbours end up far apart. */
static inline uint32_t linmdp_mix(uint32_t x)
{
    x = (x ^ (x >> 16)) * UINT32_C(0x7feb352d);
    x = (x ^ (x >> 15)) * UINT32_C(0x846ca68b);
    return x ^ (x >> 16);
}

/* Number `index` under a key, even over 32 bits. */
static inline uint32_t linmdp_draw(uint32_t key, uint32_t index)
{
    return linmdp_mix(key + linmdp_mix(index + UINT32_C(0x9e3779b9)));
}

/* The same as a whole number below n. */
static inline uint32_t linmdp_below(uint32_t key, uint32_t index, uint32_t n)
{
    return (uint32_t)(((uint64_t)linmdp_draw(key, index) * n) >> 32);
}

#endif
