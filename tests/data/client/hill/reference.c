void reference(const double *x, double *s, double *s_scale, int64_t N)
{
    double sum = 0, scale = 0;
    for (int64_t i = 0; i < N; i++) {
        sum += x[i];
        scale += x[i] < 0 ? -x[i] : x[i];
    }
    s[0] = sum;
    s_scale[0] = scale;
}
