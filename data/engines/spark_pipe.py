"""Answers the records of an RDD: spark-submit spark_pipe.py. A failed record is a line that says why,
and does not fail its partition."""

import os

from pyspark.sql import SparkSession

ATTN = "sh -c 'attn batch --jobs 1 || [ $? -eq 1 ]'"

spark = SparkSession.builder.appName("attn").getOrCreate()
records = spark.sparkContext.textFile("requests.ndjson", 7)
records.pipe(ATTN, env=dict(os.environ), checkCode=True).saveAsTextFile("results")
spark.stop()
