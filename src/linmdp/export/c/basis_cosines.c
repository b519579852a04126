/* psi_j = cos(pi (<omega_j, x> + shift_j)) / sqrt(LINMDP_P) */
void linmdp_look(linmdp_state state, linmdp_seen *seen)
{
    linmdp_wide x[LINMDP_N];
    scale(state, x);
    for (size_t j = 0; j < LINMDP_P; j++) {
        linmdp_wide turn = shift[j];
        for (size_t i = 0; i < LINMDP_N; i++)
            turn += omega[j][i] * x[i];
        turn -= 2 * floor(turn / 2); /* in half turns: exact, and small enough for a quick cosine */
        seen->psi[j] = LINMDP_COS((linmdp_psi)(PI * turn)) * LENGTH;
    }
}
