#if HASHED
/* A fixed mixing of 64 bits: the same tile always gets the same place. */
static uint64_t scattered(uint64_t code)
{
    code = (code ^ (code >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    code = (code ^ (code >> 27)) * UINT64_C(0x94D049BB133111EB);
    return code ^ (code >> 31);
}
#endif

/* psi is 1 / sqrt(TILINGS) at the tile of each tiling that holds x, and 0 elsewhere. */
void linmdp_look(linmdp_state state, linmdp_seen *seen)
{
    linmdp_wide x[LINMDP_N];
    scale(state, x);
    for (size_t j = 0; j < LINMDP_P; j++)
        seen->psi[j] = 0;
    for (unsigned t = 0; t < TILINGS; t++) {
        uint64_t code = 0;
        for (size_t i = 0; i < LINMDP_N; i++) {
            const linmdp_wide place = x[i] * (TILES - 1) + shift[t][i];
            code += stride[i] * (place < TILES - 1 ? (uint64_t)place : (uint64_t)(TILES - 1));
        }
#if HASHED
        code = scattered(code + t * UINT64_C(0x9E3779B97F4A7C15)) % ROOM;
#endif
        seen->psi[t * ROOM + code] = LENGTH;
    }
}
