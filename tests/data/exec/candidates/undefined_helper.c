void helper(float *y);
void window(const float *x, float *y, int64_t N)
{
    (void)x, (void)N;
    helper(y);
}
