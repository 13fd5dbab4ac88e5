//@ tune A in (1, 2, 4, 8)
//@ tune B in (1, 2, 4, 8, 16)
//@ tune C in (1, 2, 3)

// A partial sums, in steps of B elements; C does nothing.
void hill(const double *x, double *s, int64_t N)
{
    double part[A] = {0};
    int64_t i = 0;
    for (; i + A * B <= N; i += A * B) {
        for (int b = 0; b < B; b++) {
            for (int a = 0; a < A; a++) {
                part[a] += x[i + b * A + a];
            }
        }
    }
    for (; i < N; i++) {
        part[0] += x[i];
    }
    double sum = 0;
    for (int a = 0; a < A; a++) {
        sum += part[a];
    }
    s[0] = sum;
}
