/* math.h: what the learner needs of it, where there is no libc. */
#ifndef LINMDP_WASM_MATH_H
#define LINMDP_WASM_MATH_H

/* instructions of WebAssembly */
static inline double sqrt(double x) { return __builtin_sqrt(x); }
static inline float sqrtf(float x) { return __builtin_sqrtf(x); }
static inline double floor(double x) { return __builtin_floor(x); }

double cos(double x); /* up to a thousand turns */
float cosf(float x);
double exp(double x); /* 0 where the result would not be a normal number */
float expf(float x);
double log(double x); /* of a normal number above 0 */

#endif
