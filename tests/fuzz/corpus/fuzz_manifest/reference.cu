R//@ launch r grid=(rows) block=(1) args=(x, y, y_scale, z, z_out, z_scale)
