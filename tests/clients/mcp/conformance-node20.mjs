// The conformance suite imports `globSync` from `fs`, which Node.js has since version 22, for a command that is not
// used here. On older versions this provides one that throws an error.

import { register } from 'node:module';
import * as fs from 'node:fs';

const source = `
export async function resolve(specifier, context, next) {
  if (specifier === 'fs' && context.parentURL?.includes('/@modelcontextprotocol/conformance/')) {
    const shim = "export * from 'node:fs'; export function globSync() { throw new Error('this Node has no globSync') }";
    return { shortCircuit: true, url: 'data:text/javascript,' + encodeURIComponent(shim) };
  }
  return next(specifier, context);
}`;
if (!fs.globSync) register(`data:text/javascript,${encodeURIComponent(source)}`);
