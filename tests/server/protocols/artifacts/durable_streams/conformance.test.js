import { runConformanceTests } from "@durable-streams/server-conformance-tests"

// A long poll without a change takes up to 30 seconds.
runConformanceTests({ baseUrl: process.env.CONFORMANCE_URL, longPollTimeoutMs: 35_000 })
