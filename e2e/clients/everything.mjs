// The actions of every client: it lists and calls every tool, reads every resource, gets every prompt, completes
// arguments and makes mistakes. Its user begins with no data, so that every answer is known beforehand.

import assert from "node:assert/strict";
import { newest } from "./adapters.mjs";

const toolNames = ["memory", "get_project_main_memory", "get_module_state", "rules", "todo", "upload_document",
  "list_collections", "create_collection", "search", "fetch"];
const readingNames = ["memory", "get_project_main_memory", "get_module_state", "list_collections", "search", "fetch"];
const plan = (name) =>
  `## Constitution\nTests first.\n\n## Spec\nMaps for ${name}.\n\n## Plan\nTile by tile.\n\n## Tasks\n- [ ] T1 measure the river\n- [ ] T2 order granite\n\n## Gaps\nWho pays?\n`;
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

// list reads all pages of a list.
export async function list(client, kind) {
  const all = [];
  for (let cursor; ;) {
    const { items, next } = await client.page(kind, cursor);
    all.push(...items);
    if (!next) return all;
    cursor = next;
  }
}

// reads reads a resource, which has one content.
async function reads(client, uri) {
  const contents = await client.read(uri);
  assert.equal(contents.length, 1, uri);
  assert.equal(contents[0].uri, uri);
  return contents[0];
}

// says asserts that a tool fails with a message for the model.
async function says(client, name, args, expected) {
  const result = await client.call(name, args);
  assert.equal(result.isError, true, `${name} ${JSON.stringify(args)} gives ${JSON.stringify(result)}`);
  assert.match(result.content[0].text, expected);
}

export async function everything(client, name) {
  const called = new Set();
  // calls calls a tool and returns its answer, which comes twice: as structured content and as text.
  const calls = async (tool, args) => {
    called.add(tool);
    const result = await client.call(tool, args);
    assert.ok(!result.isError, `${tool} ${JSON.stringify(args)} gives ${JSON.stringify(result)}`);
    assert.equal(result.content.length, 1);
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
    return result.structuredContent;
  };

  const tools = await list(client, "tools");
  assert.deepEqual(tools.map((tool) => tool.name), toolNames);
  for (const tool of tools) {
    assert.ok(tool.title && tool.description && tool.inputSchema.type === "object", tool.name);
    assert.equal(typeof tool.annotations.destructiveHint, "boolean");
    assert.equal(tool.annotations.openWorldHint, false);
  }

  const prose = `${name} draws maps of granite.`;
  const main = await calls("memory", { action: "store", content: prose, project_name: name, event_type: "project-main",
    state: "active" });
  const fact = await calls("memory", { action: "store", content: `# Tiles\n\nA tile has 256 pixels, ${name} decided.`,
    project_name: name, event_type: "decision", tags: ["tiles"], metadata: { module_name: "tiles" } });
  const idle = await calls("memory", { action: "store", content: "Of no use." });
  const found = await calls("memory", { action: "search", query: "how large is a tile?", project_name: name });
  assert.ok(JSON.stringify(found).includes(fact.id), JSON.stringify(found));
  const updated = await calls("memory",
    { action: "update", id: fact.id, content: `# Tiles\n\nA tile has 512 pixels, ${name} decided.` });
  assert.equal(updated.revision, 2);
  const whole = await calls("memory", { action: "retrieve", id: fact.id });
  assert.ok(JSON.stringify(whole).includes("512 pixels"), JSON.stringify(whole));
  await calls("memory", { action: "delete", id: idle.id });
  for (const [rule_type, content] of [["do", "Measure twice."], ["dont", "Never guess."]])
    await calls("rules", { action: "store", rule_type, content, project_name: name });
  await calls("rules", { action: "store", rule_type: "do", content: "Answer briefly." });
  await calls("todo", { action: "store", content: plan(name), project_name: name });
  const progress = await calls("todo", { action: "complete", task_id: "T1", project_name: name });
  assert.ok(JSON.stringify(progress).includes("T2"), JSON.stringify(progress));
  const text = await calls("upload_document", { filename: "river.txt", content: "Wide and slow.", memory_id: fact.id });
  const picture = await calls("upload_document", { filename: "dot.png", content_base64: png, memory_id: fact.id });
  const made = await calls("create_collection", { collection_name: `of ${name}`, description: "Apart" });
  assert.ok(JSON.stringify(made).includes(`of ${name}`));
  assert.ok(JSON.stringify(await calls("list_collections", {})).includes(`of ${name}`));
  const context = JSON.stringify(await calls("memory", { action: "get_context", query: "tiles", project_name: name }));
  for (const part of ["Measure twice.", "Never guess.", "Answer briefly.", "512 pixels", "order granite"])
    assert.ok(context.includes(part), `${part} is missing in ${context}`);
  assert.ok(JSON.stringify(await calls("get_project_main_memory", { project_name: name })).includes(prose));
  assert.ok(JSON.stringify(await calls("get_module_state", { module_name: "tiles", project_name: name }))
    .includes(fact.id));
  const { results } = await calls("search", { query: "pixels of a tile" });
  const hit = results.find((result) => result.id === fact.id);
  assert.equal(hit?.title, "Tiles");
  const fetched = await calls("fetch", { id: fact.id });
  assert.equal(fetched.text, `# Tiles\n\nA tile has 512 pixels, ${name} decided.`);
  assert.deepEqual([...called].sort(), [...toolNames].sort(), "every tool was called");

  // Resources: the listed ones and those of templates, each with its whole content.
  const at = `souvenir://projects/${(await projects(client))[0].project_id}`;
  const known = {
    [`${at}/main`]: ["text/markdown", prose],
    [`${at}/rules`]: ["text/markdown", "# Do\n\nMeasure twice.\n\n# Don't\n\nNever guess.\n"],
    [`${at}/todo`]: ["text/markdown", plan(name).replace("[ ] T1", "[x] T1")],
    "souvenir://rules": ["text/markdown", "# Do\n\nAnswer briefly.\n"],
    [`souvenir://memories/${main.id}`]: ["text/markdown", prose],
    [`souvenir://memories/${fact.id}`]: ["text/markdown", fetched.text],
    [`souvenir://files/${text.id}`]: ["text/plain; charset=utf-8", "Wide and slow."],
    [`souvenir://files/${picture.id}`]: ["image/png", undefined, png],
  };
  const listed = await list(client, "resources");
  for (const resource of listed) {
    const content = await reads(client, resource.uri);
    assert.equal(content.mimeType, resource.mimeType, resource.uri);
    const [type, words, blob] = known[resource.uri] ?? [];
    if (type) assert.deepEqual([content.mimeType, content.text, content.blob], [type, words, blob]);
    else assert.ok(content.text?.length > 0, `${resource.uri} is ${JSON.stringify(content)}`);
  }
  const missing = Object.keys(known).filter((uri) => !listed.some((resource) => resource.uri === uri));
  assert.deepEqual(missing, [], "all that was stored is listed");

  const templates = await list(client, "resourceTemplates");
  assert.equal(templates.length, 6);
  for (const { uriTemplate, mimeType } of templates) {
    const id = uriTemplate.startsWith("souvenir://files/") ? text.id : fact.id;
    const uri = uriTemplate.replace("souvenir://projects/{project}", at).replace("{id}", id);
    const content = await reads(client, uri);
    assert.equal(content.mimeType, mimeType ?? "text/plain; charset=utf-8");
    if (known[uri]) assert.equal(content.text, known[uri][1]);
    else assert.equal(JSON.parse(content.text).project_name, name);
  }

  const prompts = await list(client, "prompts");
  assert.deepEqual(prompts.map((prompt) => prompt.name).sort(),
    ["load_project_context", "review_gaps", "save_session"]);
  for (const [prompt, args, ...parts] of [
    ["load_project_context", { project: name, task: "draw the river" }, "draw the river", prose, "Measure twice.",
      "T2 order granite", fact.id],
    ["save_session", { project: name, focus: "the width" }, name, "the width", "T2 order granite"],
    ["review_gaps", { project: name }, "Who pays?", "T2 order granite"],
    ["review_gaps", {}, name],
  ]) {
    const messages = await client.prompt(prompt, args);
    assert.equal(messages.length, 1);
    for (const part of parts)
      assert.ok(messages[0].content.text.includes(part),
        `${prompt}: ${part} is missing in ${messages[0].content.text}`);
  }

  if (client.complete) {
    const template = (uri) => ({ type: "ref/resource", uri });
    for (const [ref, argument, typed, value] of [
      [{ type: "ref/prompt", name: "load_project_context" }, "project", name.slice(0, 3), name],
      [template("souvenir://projects/{project}/todo"), "project", name.slice(0, 3), at.split("/").pop()],
      [template("souvenir://memories/{id}"), "id", "til", fact.id],
      [template("souvenir://files/{id}"), "id", "riv", text.id],
    ]) assert.deepEqual((await client.complete(ref, argument, typed)).values, [value], argument);
    assert.deepEqual((await client.complete({ type: "ref/prompt", name: "save_session" }, "project", "zzz")).values,
      []);
  }
  await mistakes(client);
}

const projects = async (client) => JSON.parse((await reads(client, "souvenir://projects")).text).projects;

// mistakes asserts the error of each.
async function mistakes(client) {
  await says(client, "memory", { action: "retrieve", id: "none" }, /"none" not found/);
  await says(client, "memory", { action: "retrieve" }, /id is missing; memory retrieve needs it/);
  await says(client, "memory", { action: "fly" }, /fly/);
  await says(client, "todo", { action: "complete", task_id: "T9", project_name: "no such project" }, /project/);
  await assert.rejects(client.call("fly", {}), client.looksFirst ? /'fly' not found/
    : /unknown tool .{0,2}fly.{0,2}; there are memory, /);
  await assert.rejects(client.prompt("fly", {}), /unknown prompt .{0,2}fly.{0,2}; there are load_project_context/);
  await assert.rejects(client.prompt("load_project_context", {}), /project/);
  await assert.rejects(client.read("souvenir://memories/none"), /none.{0,2} not found/);
  await assert.rejects(client.read("https://elsewhere.example/"), /[Nn]ot found/);
}

// pagesOf asserts that a long list comes in pages, which the newer SDK follows by itself, and is complete at the end.
export async function pagesOf(client, count) {
  const { items, next } = await client.page("resources");
  assert.equal(items.length, next ? 100 : count);
  const all = await list(client, "resources");
  assert.equal(new Set(all.map((resource) => resource.uri)).size, count);
  await assert.rejects(client.page("resources", "no cursor of ours"), /cursor/);
}

// onlyReads asserts the errors for a token that may not write; a read-only server does not offer to.
export async function onlyReads(client, offered) {
  const tools = (await list(client, "tools")).map((tool) => tool.name);
  assert.deepEqual(tools, offered ? toolNames : readingNames);
  assert.ok(!(await client.call("memory", { action: "search", query: "granite" })).isError);
  await says(client, "memory", { action: "store", content: "No." }, offered ? /memory:write/ : /read/);
}

// endsWithItsToken asserts that a call fails if its token was revoked after the previous call.
export async function endsWithItsToken(client, end) {
  assert.ok(!(await client.call("list_collections", {})).isError);
  await end();
  await assert.rejects(client.call("list_collections", {}), /not valid|401|[Uu]nauthorized|auth_required/);
  await assert.rejects(client.page("resources"), /not valid|401|[Uu]nauthorized|auth_required/);
}

export const revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", newest];
