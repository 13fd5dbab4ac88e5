import a
def f(x):
    s = rf"""{x["#"]}""" # a
    y = (x // 2, # b
      {"N": 4}, n = 8) \
 + 'open
