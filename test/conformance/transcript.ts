import { readdirSync, readFileSync } from 'node:fs';
import { z } from 'zod';

/** What one step asks: exactly one of the verbs, `watch`, `settle` or `sleep` (README.md). */
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

/** The names of the recorded files, without `.jsonl`, sorted. */
export function transcriptFiles(): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.jsonl'))
    .map((name) => name.slice(0, -'.jsonl'.length))
    .sort();
}

/** The cases of one file, one a line. @throws naming the line that does not have the form that the README describes. */
export function readTranscript(file: string): Case[] {
  const text = readFileSync(new URL(`${file}.jsonl`, folder), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line, index) => {
      try {
        return caseSchema.parse(JSON.parse(line));
      } catch (cause) {
        throw new Error(`${file}.jsonl:${index + 1} is not a recorded case`, { cause });
      }
    });
}

const folder = new URL('transcripts/', import.meta.url);
