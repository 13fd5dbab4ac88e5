void hill(const double *x, double *s, int64_t N)
{
    double sum = 0;
    for (int64_t i = 0; i < N; i++) {
        sum += x[i];
    }
    s[0] = sum;
}
