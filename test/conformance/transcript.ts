import { readdirSync, readFileSync } from 'node:fs';
import { z } from 'zod';

/** What one step asks: exactly one of the verbs, `watch`, `settle` or `sleep` (shared/conformance/README.md). */
const requestSchema = z.strictObject({
  get: z.string().optional(),
  head: z.string().optional(),
  options: z.string().optional(),
  post: z.string().optional(),
  put: z.string().optional(),
  patch: z.string().optional(),
  delete: z.string().optional(),
  watch: z.string().optional(),
  settle: z.string().optional(),
  /** Milliseconds. */
  sleep: z.number().optional(),
  body: z.unknown().optional(),
  /** The body as the text to send. */
  raw: z.string().optional(),
  headers: z.record(z.string(), z.string()).optional(),
  /** Of a patch: `json`, `merge`, `strategic`, `apply` or a media type. */
  type: z.string().optional(),
  /** Of a watch: milliseconds to read for. */
  for: z.number().optional(),
  /** Of a watch: events to read. */
  count: z.number().optional(),
  as: z.string().optional(),
  ignore: z.boolean().optional(),
  pick: z.array(z.string()).optional(),
});

const responseSchema = z.strictObject({
  status: z.number().optional(),
  body: z.unknown().optional(),
  contentType: z.string().optional(),
  events: z.array(z.unknown()).optional(),
  warning: z.string().optional(),
});

const caseSchema = z.strictObject({
  name: z.string(),
  about: z.string().optional(),
  cluster: z.enum(['v4', 'v6', 'dual46', 'dual64']),
  generated: z.string().optional(),
  steps: z.array(z.strictObject({ request: requestSchema, response: responseSchema })),
});

export type StepRequest = z.infer<typeof requestSchema>;
export type StepResponse = z.infer<typeof responseSchema>;
export type Case = z.infer<typeof caseSchema>;
export type ClusterName = Case['cluster'];

/** The names of the recorded files, without `.json`, sorted. */
export function transcriptFiles(): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))
    .sort();
}

/** The cases of one file. @throws when the file does not have the form that the README describes. */
export function readTranscript(file: string): Case[] {
  const parsed: unknown = JSON.parse(readFileSync(new URL(`${file}.json`, folder), 'utf8'));
  return z.array(caseSchema).parse(parsed);
}

const folder = new URL('transcripts/', import.meta.url);
