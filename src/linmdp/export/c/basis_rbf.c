/* psi_j = g_j / sum g, g_j = exp(-|x - centre_j|^2 / (2 bandwidth^2)) */
void linmdp_look(linmdp_state state, linmdp_seen *seen)
{
    linmdp_wide x[LINMDP_N], nearest = LINMDP_WIDE_MAX;
    linmdp_psi sum = 0;
    scale(state, x);
    for (unsigned pass = 0; pass < 2; pass++) /* first how near the nearest centre is: it gets weight 1 */
        for (size_t j = 0; j < LINMDP_P; j++) {
            linmdp_wide distance = 0;
            for (size_t i = 0; i < LINMDP_N; i++)
                distance += (x[i] - centre[j][i]) * (x[i] - centre[j][i]);
            if (pass == 0) {
                nearest = distance < nearest ? distance : nearest;
            } else {
                seen->psi[j] = LINMDP_EXP((linmdp_psi)((nearest - distance) * SHARPNESS));
                sum += seen->psi[j];
            }
        }
    for (size_t j = 0; j < LINMDP_P; j++)
        seen->psi[j] /= sum;
}
