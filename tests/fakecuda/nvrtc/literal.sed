# Lines of a text become string literals of C.
s/[\\"]/\\&/g
s/^/"/
s/$/\\n"/
