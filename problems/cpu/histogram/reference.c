// Exact counts. The error scale is not used for integers.
void reference(const uint8_t *key, double *count, double *count_scale, int64_t N)
{
    for (int k = 0; k < 256; k++)
        count[k] = 0;
    for (int64_t i = 0; i < N; i++)
        count[key[i]] += 1;
    for (int k = 0; k < 256; k++)
        count_scale[k] = count[k];
}
