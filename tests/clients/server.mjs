// Starts `troupe serve` (its path in TROUPE) for the tests of clients.
import {execFileSync, spawn} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';

const tests = fileURLToPath(new URL('..', import.meta.url));
export const tiny = join(tests, '../models/tiny-qwen2moe-q8_0.gguf');

// Gives where it listens, how to end it and have it reload, and a wait for what it says. Its key is 'secret'.
export async function serve(model, ...options) {
  const server = spawn(process.env.TROUPE, ['serve', model, '--port', '0', ...options],
                       {env: {...process.env, TROUPE_API_KEY: 'secret'}, stdio: ['ignore', 'ignore', 'pipe']});
  let said = '';
  const address = await new Promise((resolve, reject) => {
    server.stderr.on('data', (bytes) => {
      said += bytes;
      const found = said.match(/at (http:\S+)/);
      if (found) resolve(found[1]);
    });
    server.on('exit', () => reject(new Error(`the server ended: ${said}`)));
  });
  const says = async (words) => {
    while (!said.includes(words)) {
      if (server.exitCode !== null) throw new Error(`the server ended: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  return {address, says, stop: () => server.kill('SIGTERM'), reload: () => server.kill('SIGHUP')};
}

// The small model with a large one's chat template (of tests/data/chat_templates) and some of its special tokens.
export function tinyThatSpeaksAs(template, ...tokens) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-clients-'));
  const model = join(folder, 'model.gguf');
  execFileSync('python3', ['-c', `
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import gguf_with_template
template = (pathlib.Path(sys.argv[1]) / "data/chat_templates" / sys.argv[4]).read_text()
gguf_with_template.copy(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), template, sys.argv[5:])`,
                           tests, tiny, model, template, ...tokens]);
  return {model, remove: () => rmSync(folder, {recursive: true})};
}
