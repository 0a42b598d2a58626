"""Files of any shape and form, by their names."""

import struct

from support.array_files import npy_head

FORMS = {  # name: bytes that programs write for [[0.1, 0.5], [1.25, 3]], or words with such numbers
    "decimal-comma.csv": "0,1;0,5\n1,25;3,0\n", "decimal-column.csv": "0,5\n1,25\n", "tabs.tsv": "0.1\t0.5\n1.25\t3\n",
    "decimal-tabs.tsv": "0,1\t0,5\n1,25\t3\n", "decimal-quotes.csv": 'x,n\n"0,1",5\n"1,25",3\n',
    "decimal-labels.csv": 'the,"0,1"\nof,"1,25"\n', "decimal-blanks.txt": "the 0,1 0,5\nof 1,25 3\n",
    "trailing.csv": "0.1,0.5,\n1.25,3,\n", "trailing-header.csv": "a,b,\n0.1,0.5,\n1.25,3,\n",
    "fortran.csv": "1.0D-01,5.0D-01\n1.25D+00,3.0D+00\n", "fortran-blanks.txt": " 1.0D-01 5.0D-01\n 1.25D+00 3.0D+00\n",
    "utf-16.csv": "0.1,0.5\n1.25,3\n".encode("utf-16"), "utf-16-be.csv": b"\xfe\xff" + "0.1,0.5\n".encode("utf-16-be"),
    "utf-16-bare.csv": "0.1,0.5\n".encode("utf-16-le"), "utf-32.csv": "0.1,0.5\n".encode("utf-32"),
    "bom.csv": "\ufeff0.1,0.5\n1.25,3\n", "glove.txt": 'the 0.1 0.5\n" 1.25 3\nof 0.2 0.3\n',
    "glove-quotes.txt": 'the 0.1 0.5\n" 1.25 3\n\'\' 0.2 0.3\n" 0.5 0.25\n',
    "word2vec.txt": "2 2\nthe 0.1 0.5\nof 1.25 3\n",
    "tensor.txt": "tensor([[0.1000, 0.5000],\n        [1.2500, 3.0000]])\n",
    "tensor-type.txt": "tensor([[0.1000, 0.5000],\n        [1.2500, 3.0000]], dtype=torch.float64)\n",
    "array.txt": "array([[0.1 , 0.5 ],\n       [1.25, 3.  ]])\n", "printed.txt": "[[0.1  0.5 ]\n [1.25 3.  ]]\n",
}


FILES = {
    "vector.json": "[0.9,0.1]", "number.json": "3", "matrix3.json": "[[[1,2],[3,4]],[[5,6],[7,8]]]",
    "matrix4.json": "[[[[1,2],[3,4]]]]", "ragged.json": "[[1,2],[3]]", "empty.json": "[]", "nan.json": "[[1,NaN],[3,4]]",
    "text.txt": "hello world\n", "words.csv": "a,b\nc,d\n", "true.csv": "True,False\nTrue,True\n", "nothing.csv": "",
    "column.csv": "1\n2\n3\n", "other-width.csv": "1,2,3,4,5\n", "object.json": '{"a": [[1,2],[3,4]]}',
    "two.json": '{"a": [[1,2],[3,4]], "b": [[1,2],[3,4]]}', "lines.ndjson": "[[1,2]]\n[[3,4]]\n",
    "v2.npy": npy_head((2, 2), "<V2") + b"\x80\x3f\x00\x40" * 2, "bfloat16.npy": npy_head((2, 2), "bfloat16") + b"\x80\x3f\x00\x40" * 2,
    "vector.npy": npy_head((2,), "<f4") + struct.pack("<2f", 0.5, 0.25), "strings.npy": npy_head((1,), "<U1") + b"a\0\0\0",
    **FORMS}
