// One counter per value, one key after the other.
void histogram(const uint8_t *key, int32_t *count, int64_t N)
{
    for (int k = 0; k < 256; k++)
        count[k] = 0;
    for (int64_t i = 0; i < N; i++)
        count[key[i]]++;
}
